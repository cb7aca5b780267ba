package analysis

var (
	AssessRun      = assessRun      // compares the results of several metrics
	CheckCondition = checkCondition // checks a condition without a metric
	Holds          = holds          // evaluates a condition without a metric
	Short          = short          // shortens a result for a record
	Check          = check          // checks a metric without a document
	Arguments      = arguments      // returns the arguments of templates
	Fill           = fill           // replaces arguments in a value
)
