"""What finished runs cost, from their ledgers and never from the plan."""
