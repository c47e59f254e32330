"""`python -m kb_cli`: the command line, by its interpreter."""

from kb_cli.main import main

main()
