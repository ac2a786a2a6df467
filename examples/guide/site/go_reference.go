// SPDX-License-Identifier: Apache-2.0

// Go_reference writes the documentation of a Go package as a page of the site: go run go_reference.go FOLDER.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"strings"
)

type page struct {
	pkg   *doc.Package
	files *token.FileSet
	out   bytes.Buffer
}

func main() {
	p := page{files: token.NewFileSet()}
	tests := func(info os.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	packages, err := parser.ParseDir(p.files, os.Args[1], tests, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	var files []*ast.File
	for _, file := range packages["dist"].Files {
		files = append(files, file)
	}
	if p.pkg, err = doc.NewFromFiles(p.files, files, "libdist.example/dist"); err != nil {
		log.Fatal(err)
	}
	p.write()
	os.Stdout.Write(p.out.Bytes())
}

func (p *page) write() {
	fmt.Fprintf(&p.out, "# Go reference\n\n`import %q`\n\n", p.pkg.ImportPath)
	p.text(p.pkg.Doc, 2)
	p.values("Constants", p.pkg.Consts)
	p.values("Variables", p.pkg.Vars)
	if len(p.pkg.Funcs) > 0 {
		fmt.Fprint(&p.out, "## Functions\n\n")
		p.functions("", p.pkg.Funcs)
	}
	fmt.Fprint(&p.out, "## Types\n\n")
	for _, each := range p.pkg.Types {
		p.entry(each.Name, "type "+each.Name, each.Decl, each.Doc)
		p.values("", append(each.Consts, each.Vars...))
		p.functions("", each.Funcs)
		p.functions(each.Name+".", each.Methods)
	}
}

// values writes constants or variables, below a title if the list is not empty.
func (p *page) values(title string, values []*doc.Value) {
	if len(values) > 0 && title != "" {
		fmt.Fprintf(&p.out, "## %s\n\n", title)
	}
	for _, value := range values {
		for _, name := range value.Names {
			p.target(name)
		}
		p.code(value.Decl)
		p.text(value.Doc, 5)
	}
}

func (p *page) functions(receiver string, functions []*doc.Func) {
	for _, each := range functions {
		each.Decl.Body = nil
		p.entry(receiver+each.Name, "func "+receiver+each.Name, each.Decl, each.Doc)
	}
}

func (p *page) entry(name, title string, declaration ast.Node, text string) {
	p.target(name)
	fmt.Fprintf(&p.out, "### %s\n\n", title)
	p.code(declaration)
	p.text(text, 4)
}

func (p *page) target(name string) { fmt.Fprintf(&p.out, "(go.%s)=\n", name) }

func (p *page) code(declaration ast.Node) {
	fmt.Fprint(&p.out, "```go\n")
	if err := format.Node(&p.out, p.files, declaration); err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(&p.out, "\n```\n\n")
}

func (p *page) text(text string, level int) {
	printer := p.pkg.Printer()
	printer.HeadingLevel = level
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = func(link *comment.DocLink) string {
		name := strings.TrimPrefix(link.Recv+"."+link.Name, ".")
		if link.ImportPath != "" {
			return "https://pkg.go.dev/" + link.ImportPath + "#" + name
		}
		return "#go." + name
	}
	p.out.Write(printer.Markdown(p.pkg.Parser().Parse(text)))
	p.out.WriteString("\n")
}
