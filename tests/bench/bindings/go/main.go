// SPDX-License-Identifier: Apache-2.0

// Bench measures libdist from Go for dist_bench, which starts it, tells it what to measure, and compares it with C. They
// exchange the lines of ../../peers/protocol.hpp on stdin and stdout.
//
//	bench REPLICAS
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"libdist.example/dist"
)

// Replicas run on libdist threads, which is the default and has no name, or on goroutines of the program.
var forms = []struct {
	name    string
	threads dist.Threads
}{{"", dist.CallerThread}, {"goroutines", dist.Goroutines}}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func serve() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("how many replicas? One number is missing")
	}
	replicas, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	// As the binding's README recommends: with one more Go processor, Go's monitor thread delays no replica.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), replicas+1))
	ready := []string{"@ready", "Go " + strings.TrimPrefix(runtime.Version(), "go")}
	benches := map[string]*bench{}
	for _, form := range forms {
		strategy, err := dist.New(dist.Options{Replicas: replicas, Threads: form.threads})
		if err != nil {
			return err
		}
		defer strategy.Close()
		benches[form.name] = &bench{strategy: strategy}
		ready = append(ready, form.name)
	}
	say(ready)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() != "quit"; {
		answer, err := answer(benches, lines.Text())
		if err != nil {
			return err
		}
		say(answer)
	}
	return nil
}

func say(words []string) { fmt.Println(strings.Join(words, "\t")) }

func answer(benches map[string]*bench, line string) ([]string, error) {
	words := strings.Split(line, "\t")
	if len(words) != 9 || words[0] != "measure" {
		return []string{"@no", "no such command"}, nil
	}
	form, operation, dtype, layout, pace := words[1], words[2], words[3], words[5], words[6]
	var numbers [3]int
	for i, word := range []string{words[4], words[7], words[8]} {
		var err error
		if numbers[i], err = strconv.Atoi(word); err != nil {
			return nil, err
		}
	}
	b := benches[form]
	p := plan{iterations: numbers[1], batches: numbers[2]}
	var samples []float64
	var err error
	switch {
	case b != nil && pace == "hot" && operation == "run":
		samples, err = b.emptyRuns(p)
	case b != nil && pace == "hot" && operation == "all_reduce" && dtype == "f32" && layout == "in_place":
		samples, err = b.allReduces(p, numbers[0]/4)
	case b != nil && pace == "hot" && operation == "barrier":
		samples, err = b.barriers(p)
	default:
		return []string{"@no", "not offered"}, nil
	}
	if err == errWrong {
		return []string{"@failed", err.Error()}, nil
	}
	times := []string{"@times"}
	for _, us := range samples {
		times = append(times, strconv.FormatFloat(us, 'f', 4, 64))
	}
	return times, err
}
