"""`tape.graph`: draws the computation graph of a tape."""
