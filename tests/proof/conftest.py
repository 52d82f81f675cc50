"""The proof: methods that look for what the tests of single rules can't see. Its folder is on the path."""
