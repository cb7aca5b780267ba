package main

import (
	"bytes"
	"strings"
	"text/template"
)

// formula is a Homebrew formula for a tap (https://docs.brew.sh/Formula-Cookbook). It installs the program from the
// platform's archive.
var formula = template.Must(template.New("formula").Parse(`class Gitrollout < Formula
  desc "{{.Description}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{- range .Systems}}

  on_{{.Name}} do
{{- range .Archives}}
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{- end}}

  def install
    bin.install "gitrollout"
    generate_completions_from_executable bin/"gitrollout", "completion"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gitrollout version")
  end
end
`))

// formulaSystem is an operating system of a formula, with an archive for each CPU.
type formulaSystem struct {
	Name     string
	Archives []formulaArchive
}

type formulaArchive struct{ CPU, URL, Sum string }

// writeFormula writes gitrollout.rb, which refers to the archives for macOS and Linux.
func (r *release) writeFormula(map[platform]string) error {
	var systems []formulaSystem
	for _, system := range [][2]string{{"darwin", "macos"}, {"linux", "linux"}} {
		s := formulaSystem{Name: system[1]}
		for _, of := range r.platforms {
			cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[of.arch]
			if of.os != system[0] || cpu == "" {
				continue
			}
			sum, err := r.sum(r.archiveName(of))
			if err != nil {
				return err
			}
			s.Archives = append(s.Archives, formulaArchive{cpu, r.downloads + "/" + r.archiveName(of), sum})
		}
		if s.Archives != nil {
			systems = append(systems, s)
		}
	}
	var text bytes.Buffer
	err := formula.Execute(&text, map[string]any{
		"Description": description, "Homepage": homepage, "Version": strings.TrimPrefix(r.version, "v"), "Systems": systems,
	})
	if err != nil {
		return err
	}
	return r.write("gitrollout.rb", text.Bytes())
}
