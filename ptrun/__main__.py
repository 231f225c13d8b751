"""`python -m ptrun` is `ptrun`."""

from ptrun.main import main

if __name__ == "__main__":
    main()
