// Package schedule computes when recurring windows are open, without a clock, in bounded searches.
package schedule
