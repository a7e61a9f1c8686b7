"""The paper's figures, its theory and the honest picture beside them, made anew by one command."""
