package notify

var (
	EventAs  = eventAs  // returns an event as another kind, such as a repeated one
	Troubles = troubles // compares two states' messages about one trouble
)
