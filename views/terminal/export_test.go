package terminal

var (
	Width        = width        // counts columns
	DrawHooks    = drawHooks    // draws a part of an App
	DrawAnalyses = drawAnalyses // draws a part of an App
)

func (l Look) Without(pods int) Look { l.fewer = pods; return l } // omits pods, as a Screen does for a small window
func (n *News) Add(app string)       { n.lines[app] = "" }        // makes News of an app that is no longer listed
