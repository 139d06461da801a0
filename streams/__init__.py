"""The Faust application: events in, predictions out."""
