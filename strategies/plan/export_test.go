package plan

// CanaryCounts returns a step's pod counts, for tables of many numbers of replicas.
var CanaryCounts = canaryCounts
