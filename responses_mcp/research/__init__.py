"""Research: questions that take minutes, asked once, in runs that outlive the call, the connection and the process."""
