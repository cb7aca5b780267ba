package analysis

// Histogram is a result with cumulative buckets in ascending order. The last bucket has the bound +Inf and counts all
// requests.
type Histogram []Bucket

// Bucket counts the requests that took at most Bound.
type Bucket struct{ Bound, Count float64 }
