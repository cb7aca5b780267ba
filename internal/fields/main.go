// Command fields prints the content of render/fields.txt: the Kubernetes version that introduced each field after the
// oldest supported version, and the keys of lists. It reads the Go types of k8s.io/api, which the module proxy has for
// each Kubernetes version. Run it after an update of client-go:
//
//	go run ./internal/fields > render/fields.txt
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldest is the minor version of the oldest supported Kubernetes. All supported versions are assumed to have the fields of this version.
const oldest = 25

func main() {
	lines, err := table()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(lines, "\n"))
}

// table returns sorted lines "TYPE.FIELD MINOR KEYS", one line for each field that is newer than version `oldest`, or
// is a list with keys.
func table() ([]string, error) {
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/api").Output()
	if err != nil {
		return nil, fmt.Errorf("look up the version of k8s.io/api: %w", err)
	}
	current := strings.TrimSpace(string(version))
	newest, err := strconv.Atoi(strings.Split(current, ".")[1])
	if err != nil {
		return nil, fmt.Errorf("read the version %s of k8s.io/api: %w", current, err)
	}
	now := structs{}
	for _, module := range []string{"api", "apimachinery"} {
		if err := now.add(module, current); err != nil {
			return nil, err
		}
	}
	since := map[string]int{}
	later := now
	for minor := newest - 1; minor >= oldest; minor-- {
		then := structs{}
		if err := then.add("api", fmt.Sprintf("v0.%d.0", minor)); err != nil {
			return nil, err
		}
		for name, fields := range now {
			for field := range fields {
				_, had := then[name][field]
				if _, has := later[name][field]; has && !had && len(then[name]) > 0 {
					since[name+"."+field] = minor + 1
				}
			}
		}
		later = then
	}
	var lines []string
	for name, fields := range now {
		for field, keys := range fields {
			at := name + "." + field
			isApplied := !strings.HasSuffix(name, "Status") && field != "status"
			if isApplied && (keys != "" || since[at] > 0) {
				lines = append(lines, fmt.Sprintf("%s %d%s", at, since[at], keys))
			}
		}
	}
	return slices.Sorted(slices.Values(lines)), nil
}

// structs has the fields of each struct. The value of a list field has the keys of the list's items, each after a
// space. If the items themselves are the keys, the value is " set".
type structs map[string]map[string]string

// add adds the structs of a module of k8s.io, including the fields of embedded structs.
func (s structs) add(module, version string) error {
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/"+module+"@"+version).Output()
	if err != nil {
		return fmt.Errorf("download k8s.io/%s %s: %w", module, version, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return fmt.Errorf("read the folder of k8s.io/%s: %w", module, err)
	}
	pattern := map[string]string{"api": "*/*/types*.go", "apimachinery": "pkg/apis/meta/v1/types*.go"}[module]
	files, err := filepath.Glob(filepath.Join(downloaded.Dir, pattern))
	if err != nil {
		return err
	}
	embedded := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("read the types of k8s.io/%s %s: %w", module, version, err)
		}
		in, _ := filepath.Rel(downloaded.Dir, filepath.Dir(file)) // cannot fail, because Glob returns files below Dir
		s.read(module+"/"+filepath.ToSlash(in)+".", parsed, embedded)
	}
	for name, inner := range embedded {
		for _, one := range inner {
			maps.Copy(s[name], s[one])
		}
	}
	return nil
}

var listMapKey = regexp.MustCompile(`(?m)^\s*\+listMapKey=(\w+)`)

func (s structs) read(pkg string, file *ast.File, embedded map[string][]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, _ := n.(*ast.TypeSpec)
		if spec == nil {
			return true
		}
		body, is := spec.Type.(*ast.StructType)
		if !is {
			return true
		}
		name, fields := pkg+spec.Name.Name, map[string]string{}
		s[name] = fields
		for _, f := range body.Fields.List {
			inner, _ := f.Type.(*ast.Ident)
			if len(f.Names) == 0 && inner != nil {
				embedded[name] = append(embedded[name], pkg+inner.Name)
			}
			if f.Tag == nil {
				continue
			}
			tag, _ := strconv.Unquote(f.Tag.Value) // the parser has accepted the literal
			if json, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); json != "" && json != "-" {
				fields[json] = keysOf(f.Doc)
			}
		}
		return true
	})
}

// keysOf reads a list's keys from its comments +listType and +listMapKey. It writes each key after a space.
func keysOf(doc *ast.CommentGroup) (keys string) {
	if doc == nil {
		return ""
	}
	var text strings.Builder // the method Text would omit lines such as //+listType
	for _, c := range doc.List {
		text.WriteString(strings.TrimPrefix(c.Text, "//") + "\n")
	}
	if strings.Contains(text.String(), "+listType=set") {
		return " set"
	}
	if strings.Contains(text.String(), "+listType=map") {
		for _, m := range listMapKey.FindAllStringSubmatch(text.String(), -1) {
			keys += " " + m[1]
		}
	}
	return keys
}
