"""One self-contained page for any saved runs: blocks, charts, and the page itself."""
