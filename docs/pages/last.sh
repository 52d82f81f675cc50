#!/bin/sh
# Print the last good reading of a day.

grep -v '?' "$1" |
    tail -n 1
