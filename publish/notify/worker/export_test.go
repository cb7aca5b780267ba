package worker

func (w *Worker) Asked() int { return w.asked } // returns how many rounds Notify has asked for

var Clone = clone // copies a record for the tests
