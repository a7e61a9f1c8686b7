"""Networks: topologies, gain models, files, and how they mix."""
