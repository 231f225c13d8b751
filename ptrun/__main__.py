"""`python -m ptrun` is `ptrun`."""

from ptrun.cli import main

if __name__ == "__main__":
    main()
