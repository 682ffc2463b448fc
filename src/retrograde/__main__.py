"""`python -m retrograde`: the command `retrograde`."""

import sys

from retrograde.standin.command_line import main

if __name__ == "__main__":
    sys.exit(main())
