"""`python -m murmurcast`: the same as the command `murmurcast`."""

from murmurcast.cli import main

if __name__ == "__main__":
    main()
