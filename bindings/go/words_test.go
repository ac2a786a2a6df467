// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestMessagesSpeakGo(t *testing.T) {
	for c, want := range map[string]string{
		"dist_run(): fn is NULL": "Strategy.Run: fn is nil",
		"kind is 9: use DIST_STRATEGY_MIRRORED, ONE_DEVICE, DEFAULT, CENTRAL_STORAGE or MESH":          "kind is 9: use dist.Mirrored, dist.OneDevice, dist.Default, dist.CentralStorage or dist.Mesh",
		"op is 9; use DIST_REDUCE_SUM or another DIST_REDUCE_...":                                      "op is 9; use dist.Sum or another dist.ReduceOp",
		"dist_run_options.timeout_ns is negative; 0 means none":                                        "RunOptions.Timeout is negative; 0 means none",
		"op is DIST_REDUCE_USER, but options->reduce_fn is NULL":                                       "op is dist.ReduceUser, but ReduceWith is nil",
		"find out what delays it before this call, or give a longer timeout_ns":                        "find out what delays it before this call, or give a longer Timeout",
		"replica 1 failed with UNKNOWN: dist_reduce() said: column is NULL":                            "replica 1 failed with UNKNOWN: Strategy.Reduce said: column is NULL",
		"DIST_CROSS_DEVICE_HOST needs functions, with at least `reduce`":                               "dist.CrossDeviceHost needs functions, with at least `reduce`",
		"dist_group_create(): replica_ids[1] is 7, but this strategy's replicas are 0 to 1":            "Strategy.NewGroup: replicaIDs[1] is 7, but this strategy's replicas are 0 to 1",
		"dist_values_from_function(): out_value is NULL":                                               "Strategy.NewPerReplicaFromFunction: the result (value) is nil",
		"all_reduce of tag \"a_b\": replica 1 gave f32[2]":                                             "all_reduce of tag \"a_b\": replica 1 gave f32[2]",
		"threads is DIST_THREADS_HOST: use DIST_THREADS_CALLER or LIBRARY; HOST is what it was before": "threads is dist.Goroutines: use dist.CallerThread or dist.LibraryThreads; dist.Goroutines is what it was before",
	} {
		if got := inGo(c); got != want {
			t.Errorf("%q is\n%q, expected\n%q", c, got, want)
		}
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

func TestWordsAreThisPackages(t *testing.T) {
	names := exported(t)
	for _, table := range []map[string]string{functionWords, constantWords, kindWords} {
		for c, name := range table {
			if !names[strings.TrimPrefix(name, "dist.")] && !strings.HasPrefix(name, "context.") && name != "nil" && !strings.ContainsAny(name, " ") && name != "ApplyOptions.Function" && name != "Options.HopGoroutine" {
				t.Errorf("%s is %s, which is not there", c, name)
			}
		}
	}
}

// What the core can say, in its sources, where they are there.
func TestNoMessageSpeaksC(t *testing.T) {
	if _, err := os.Stat("../../core"); err != nil {
		t.Skip("the core's sources are not there")
	}
	text := regexp.MustCompile(`(?s)"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*`)
	one := regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
	comment := regexp.MustCompile(`(?m)//.*$|^#.*$`)
	// Whoever is told of these has called C, or libdist's own languages; names of metrics, of files and of TensorFlow.
	others := regexp.MustCompile(`struct_size|size_bytes|row_bytes|sizeof|_INIT\b|^dist_\w+$|\.hp?p?$|^"|family|clocksource|cpu\.` +
		`|pthread_exit|timeout_seconds|dlpack|DLPack|reserved`)
	// Variables of the environment have one name in all languages.
	environment := regexp.MustCompile(`\bDIST_(TRANSPORT|REPLICAS|RENDEZVOUS|RANK|SIZE|JOB_NAME|JOB_SECRET|PLAINTEXT|TLS_\w+|BIND_ADDRESS|LEASE_SECONDS|MODULE_FOLDER)\b`)
	spoken := regexp.MustCompile(`\bdist_\w+|\bDIST_\w+|\bNULL\b|_ns\b|\w->\w|\bout_\w+|\bdestroy\b`)
	messages := 0
	for _, folder := range []string{"../../core", "../../capi"} {
		_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".cpp") && !strings.HasSuffix(path, ".hpp") || strings.Contains(path, "trace") ||
				strings.Contains(path, "inspect/metrics") || strings.Contains(path, "capi/tools") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, found := range text.FindAllString(comment.ReplaceAllString(string(source), ""), -1) {
				message := ""
				for _, part := range one.FindAllString(found, -1) {
					part, _ = strconv.Unquote(part)
					message += part
				}
				if !strings.Contains(message, " ") || others.MatchString(message) {
					continue
				}
				messages++
				if left := spoken.FindString(environment.ReplaceAllString(inGo(message), "")); left != "" {
					t.Errorf("%s: %q is left of %q", path, left, message)
				}
			}
			return nil
		})
	}
	if messages < 300 {
		t.Errorf("only %d messages were found", messages)
	}
}
