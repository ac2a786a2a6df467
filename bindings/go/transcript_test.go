// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"libdist.example/dist"
)

// player plays one case by the package's public API.
type player struct {
	mu      sync.Mutex
	objects map[string]any
	played  map[*line]bool
	faults  []string
}

// TestTranscripts plays the golden cases of the file that DIST_TRANSCRIPTS names.
func TestTranscripts(t *testing.T) {
	path := os.Getenv("DIST_TRANSCRIPTS")
	if path == "" {
		t.Skip("DIST_TRANSCRIPTS does not name the transcripts' file")
	}
	cases, err := readTranscripts(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases in " + path)
	}
	failed, skipped := 0, map[string]int{}
	for _, one := range cases {
		if why := impossible(one); why != "" {
			skipped[why]++
			continue
		}
		faults := play(one)
		if len(faults) == 0 {
			continue
		}
		if failed++; failed <= 20 {
			t.Errorf("%s %s: %s", one.area, one.id, strings.Join(faults, "\n    "))
		}
	}
	t.Logf("%d cases, %d failed, skipped: %v", len(cases), failed, skipped)
}

// impossible says why a case cannot be written in Go; "" where it can.
func impossible(one golden) string {
	for _, suffix := range []string{"/from_function/returns_list", "/distribute_dataset/not_a_dataset_list"} {
		if strings.HasSuffix(one.id, suffix) {
			return "a list in the place of a dataset does not compile"
		}
	}
	switch {
	case strings.HasSuffix(one.id, "topology_bad/coords_none"):
		return "a device is its coordinates: there is none without"
	case one.area == "run" && strings.HasSuffix(one.id, "/args/not_a_tuple"):
		return "a value that is no list or tuple is the one argument"
	case one.area == "tpu_device_assignment" && one.id == "constructor/empty":
		return "lists of no replicas do not say how many devices each has"
	}
	return ""
}

// play plays a case on a thread of its own, which ends with it: with its scopes and its default strategy.
func play(one golden) []string {
	p := &player{objects: map[string]any{}, played: map[*line]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		_ = p.below(one.root)
	}()
	<-done
	p.allPlayed(one.root, false)
	for _, object := range p.objects {
		if closed, ok := object.(io.Closer); ok {
			_ = closed.Close()
		}
	}
	for _, object := range p.objects {
		if s, ok := object.(*dist.Strategy); ok {
			_ = s.Close() // a default strategy refuses
		}
	}
	return p.faults
}

// programError is what a function of the program's fails with: a status and a text.
type programError struct {
	code dist.Code
	text string
}

func (e *programError) Error() string { return e.text }
func (e *programError) Unwrap() error { return e.code }

// statusOf is what C would have said of an error.
func statusOf(err error) (code dist.Code, text string) {
	var program *programError
	var libdist *dist.Error
	if errors.As(err, &program) {
		return program.code, program.text
	}
	if errors.As(err, &libdist) {
		if text := dist.Marked(libdist); text != "" {
			return libdist.Code, text
		}
		return libdist.Code, libdist.Message
	}
	return dist.ErrUnknown, err.Error()
}

// below does the calls of a function's line, and gives the last failure.
func (p *player) below(function *line) (failure error) {
	for _, call := range function.below {
		if err := p.perform(call); err != nil {
			failure = err
		}
	}
	return failure
}

// perform does one call and compares what comes. It returns the call's own failure.
func (p *player) perform(l *line) error {
	if l.name == "workers" {
		p.workers(l)
		return nil
	}
	call, known := calls[l.name]
	if !known {
		p.fault(l, "a function that is not known")
		return nil
	}
	came := &answer{p: p, line: l, seen: map[string]bool{"status": true, "error": true}}
	err := call(p, l, came)
	came.status(err)
	for key := range l.answered {
		if err == nil && !came.seen[key] && !strings.HasSuffix(key, ".is") {
			p.fault(l, "%s has not come", key)
		}
	}
	return err
}

// workers does each worker's calls on a goroutine of its own.
func (p *player) workers(call *line) {
	var all sync.WaitGroup
	for _, worker := range call.below {
		p.take(call, func(l *line) bool { return l == worker })
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			_ = p.below(worker)
		}()
	}
	all.Wait()
}

func (p *player) fault(l *line, format string, arguments ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf("line %d, %s: %s", l.number, l.name, fmt.Sprintf(format, arguments...)))
}

func (p *player) allPlayed(l *line, isCall bool) {
	for _, below := range l.below {
		if isCall && below.name != "source" && below.name != "file" && !p.played[below] {
			p.fault(below, "the function has not been called")
		}
		p.allPlayed(below, !isCall)
	}
}

// take is a line below a call that fits and has not been played.
func (p *player) take(call *line, fits func(l *line) bool) *line {
	for _, l := range call.below {
		p.mu.Lock()
		played := p.played[l]
		p.mu.Unlock()
		if played || !fits(l) {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.played[l] {
			continue
		}
		p.played[l] = true
		return l
	}
	return nil
}

// get is the object of a name; the zero T where there is none, or "-".
func get[T any](p *player, name string) T {
	p.mu.Lock()
	defer p.mu.Unlock()
	object, _ := p.objects[name].(T)
	return object
}

func values(p *player, names []string) []*dist.Value {
	list := make([]*dist.Value, len(names))
	for i, name := range names {
		list[i] = get[*dist.Value](p, name)
	}
	return list
}

// bind names an object; an error where the name is another's. What was bound before stays.
func (p *player) bind(name string, object any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, bound := p.objects[name]
	if !bound || name[0] == 'r' {
		p.objects[name] = object
		return nil
	}
	same := known == object
	switch known := known.(type) {
	case *dist.Value:
		v, _ := object.(*dist.Value)
		same = known.Same(v)
	case *dist.Variable:
		v, _ := object.(*dist.Variable)
		same = known.Same(v)
	}
	if !same {
		return fmt.Errorf("is another object than %s", name)
	}
	return nil
}

// answer is what a call gave.
type answer struct {
	p    *player
	line *line
	seen map[string]bool
}

func (a *answer) status(err error) {
	expected, has := a.line.answered["status"]
	if !has {
		return
	}
	code, text := dist.Code(0), ""
	if err != nil {
		code, text = statusOf(err)
	}
	if expected != fmt.Sprint(int(code)) {
		a.p.fault(a.line, "status is %d (%s), expected %s", int(code), text, expected)
		return
	}
	if want, has := a.line.answered["error"]; has && want != "?" && !sameText(a.line.answered.text("error"), text) {
		a.p.fault(a.line, "error is %q, expected %q", text, a.line.answered.text("error"))
	}
}

// sameText compares an error's text with that of C, without the marks around names. If this package returns the error
// before it calls C, the text lacks the name of the function and has nil for NULL.
func sameText(want, got string) bool {
	got = strings.NewReplacer("\x0e", "", "\x0f", "").Replace(got)
	return want == got || strings.HasSuffix(strings.ReplaceAll(want, "NULL", "nil"), "(): "+got)
}

func (a *answer) is(key, got string) {
	a.seen[key] = true
	if want, has := a.line.answered[key]; !has || want != got {
		a.p.fault(a.line, "%s is %s, expected %s", key, got, want)
	}
}

func (a *answer) int(key string, got int) { a.is(key, fmt.Sprint(got)) }

func (a *answer) bool(key string, got bool) {
	if got {
		a.int(key, 1)
	} else {
		a.int(key, 0)
	}
}

// text: NULL is "" in Go.
func (a *answer) text(key, got string) {
	a.seen[key] = true
	if want := a.line.answered.text(key); want != got {
		a.p.fault(a.line, "%s is %q, expected %q", key, got, want)
	}
}

// object is a handle that came, or none.
func (a *answer) object(key string, object any, isNil bool) {
	a.seen[key] = true
	name := a.line.answered[key]
	if isNil || name == "-" || name == "" {
		if !isNil || name != "-" {
			a.p.fault(a.line, "%s is none: %v, expected %q", key, isNil, name)
		}
		return
	}
	if err := a.p.bind(name, object); err != nil {
		a.p.fault(a.line, "%s: %v", key, err)
	}
}

func (a *answer) value(key string, v *dist.Value) {
	a.object(key, v, v == nil)
	if expected, has := a.line.answered[key+".is"]; has && v != nil {
		if err := a.p.matches(parseTree(expected), v); err != nil {
			a.p.fault(a.line, "%s: %v", key, err)
		}
	}
}

func (a *answer) tensor(key string, tensor dist.RawTensor) {
	a.seen[key] = true
	if err := sameTensor(a.line.answered[key], tensor); err != nil {
		a.p.fault(a.line, "%s: %v", key, err)
	}
}

var ctx = context.Background()
