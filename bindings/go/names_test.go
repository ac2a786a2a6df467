// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// marked replaces backquotes around names by the marks that the core puts there.
func marked(text string) string {
	parts := strings.Split(text, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "\x0e" + parts[i] + "\x0f"
	}
	return strings.Join(parts, "")
}

func TestMessagesSpeakGo(t *testing.T) {
	for c, want := range map[string]string{
		"`dist_run()`: `replica_id` is `NULL`":                                     "Strategy.Run: replicaID is nil",
		"`kind` is 9: use `DIST_STRATEGY_MIRRORED` or another `DIST_STRATEGY_...`": "Kind is 9: use dist.Mirrored or another dist.Kind",
		"`dist_run_options.timeout_ns` is negative; 0 means none":                  "RunOptions.Timeout is negative; 0 means none",
		"`op` is `DIST_REDUCE_USER`, but `options->reduce_fn` is `NULL`":           "op is dist.ReduceUser, but ReduceWith is nil",
		"or give a longer `timeout_ns`":                                            "or give a longer Timeout",
		"replica 1 failed with UNKNOWN: `dist_reduce()` said: column is NULL":      "replica 1 failed with UNKNOWN: Strategy.Reduce said: column is NULL",
		"`dist_group_create()`: `replica_ids[1]` is 7":                             "Strategy.NewGroup: replicaIDs[1] is 7",
		"all_reduce of tag \"a_b\" dist_run(): replica 1 gave f32[2]":              "all_reduce of tag \"a_b\" dist_run(): replica 1 gave f32[2]",
		"the strategy still has groups; `destroy` them first":                      "the strategy still has groups; close them first",
		"`options->cpu->num_cpus` is -1":                                           "len(CPUs) is -1",
	} {
		if got := OwnWords(marked(c)); got != want {
			t.Errorf("%q is\n%q, expected\n%q", c, got, want)
		}
	}
	if got := OwnWords("a text that was cut: \x0edist_run("); got != "a text that was cut: dist_run(" {
		t.Errorf("it is %q", got)
	}
}

// exported are the names that a program can use: "Strategy.Run", "New", "Sum".
func exported(t *testing.T) map[string]bool {
	files, err := parser.ParseDir(token.NewFileSet(), ".", func(file fs.FileInfo) bool {
		return !strings.HasSuffix(file.Name(), "_test.go")
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files["dist"].Files {
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if pointer, ok := of.(*ast.StarExpr); ok {
						of = pointer.X
					}
					if generic, ok := of.(*ast.IndexExpr); ok {
						of = generic.X
					}
					if plain, ok := of.(*ast.Ident); ok {
						name = plain.Name + "." + name
					}
				}
				names[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch one := spec.(type) {
					case *ast.TypeSpec:
						names[one.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range one.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

func TestNamesAreThisPackages(t *testing.T) {
	names, rows := exported(t), 0
	for _, file := range []string{"../dist_names.i", "../dist_enum_names.i"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Skip("the table of names is not there")
		}
		for _, line := range strings.Split(string(text), "\n") {
			row := strings.Split(line, " | ")
			if len(row) != 4 || !strings.HasPrefix(strings.ToLower(row[0]), "dist_") {
				continue
			}
			rows++
			name := strings.TrimPrefix(row[1], "dist.")
			known := name == "-" || name == "nil" || names[name] || strings.HasPrefix(name, "context.") || strings.Contains(name, " ")
			if !known && name != "ApplyOptions.Function" && !strings.HasPrefix(name, "Options.") {
				t.Errorf("%s is %s, which is not there", row[0], name)
			}
		}
	}
	if rows < 500 {
		t.Errorf("only %d rows were found", rows)
	}
}
