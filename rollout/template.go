package rollout

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	texttemplate "text/template"
	"text/template/parse"
)

// boundedFuncs limits the length of text/template functions' results, because each call may double a text.
func boundedFuncs() texttemplate.FuncMap {
	bounded := func(f func(args ...any) string) func(args ...any) (string, error) {
		return func(args ...any) (string, error) {
			text := f(args...)
			if len(text) > 64<<10 {
				return "", errors.New("the text is too long")
			}
			return text, nil
		}
	}
	return texttemplate.FuncMap{
		"print": bounded(fmt.Sprint), "println": bounded(fmt.Sprintln), "html": bounded(texttemplate.HTMLEscaper),
		"js": bounded(texttemplate.JSEscaper), "urlquery": bounded(func(args ...any) string {
			return url.QueryEscape(fmt.Sprint(args...))
		}),
		"printf": func(format string, args ...any) (string, error) {
			return bounded(func(args ...any) string { return fmt.Sprintf(format, args...) })(args...)
		},
	}
}

// checkNodes refuses calls of other templates, loops over anything but lists, and a loop inside two loops.
func checkNodes(list *parse.ListNode, loops int) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		var err error
		switch n := node.(type) {
		case *parse.TemplateNode:
			err = errors.New("calls another template: write that text in place")
		case *parse.IfNode:
			err = errors.Join(checkNodes(n.List, loops), checkNodes(n.ElseList, loops))
		case *parse.WithNode:
			err = errors.Join(checkNodes(n.List, loops), checkNodes(n.ElseList, loops))
		case *parse.RangeNode:
			if !isList(n.Pipe) || loops > 1 {
				return errors.New("range works only on .Kinds, .Analyses and .Over, at most two deep")
			}
			err = errors.Join(checkNodes(n.List, loops+1), checkNodes(n.ElseList, loops))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isList(pipe *parse.PipeNode) bool {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	var path []string
	switch n := pipe.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		path = n.Ident
	case *parse.VariableNode: // $.Analyses
		path = n.Ident[1:]
	}
	return len(path) == 1 && slices.Contains([]string{"Kinds", "Analyses", "Over"}, path[0])
}
