"""What the commands share on a terminal: output, progress, log lines, completion, options."""
