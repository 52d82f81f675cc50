"""Which flags has `completion`? Next: `completion_command`."""

import click

from .flags import output_flags

_HELP = """Print the script that lets a shell complete commands, flags and files.

\b
Examples:
  eval "$(sift-batch completion bash)"      in ~/.bashrc
  eval "$(sift-batch completion zsh)"       in ~/.zshrc, after compinit
  sift-batch completion fish >~/.config/fish/completions/sift-batch.fish

\b
Exit codes:
  0  the script is printed
  2  there is no script for this shell
"""


@click.command(help=_HELP, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="bash|zsh|fish")
@output_flags
def command(shell: str, quiet: bool, as_json: bool) -> int:
    """Hand the shell's name on."""
    from .completion_command import completion_command

    return completion_command(shell, quiet=quiet, as_json=as_json)
