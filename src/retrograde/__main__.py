"""`python -m retrograde`: the command `retrograde`."""

import sys

from retrograde.tensorflow_shim.command_line import main

if __name__ == "__main__":
    sys.exit(main())
