package notify

var (
	EventAs  = eventAs  // gives an event another kind, title and text
	Troubles = troubles // returns the ids of a state's problems
)
