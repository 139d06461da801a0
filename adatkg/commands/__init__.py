"""The subcommands, one file each: what it takes, what it calls, what it prints."""
