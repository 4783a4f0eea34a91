"""Research: questions that take minutes, sent once, in runs that outlive the call, the connection and the process."""
