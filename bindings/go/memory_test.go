// SPDX-License-Identifier: Apache-2.0

package dist_test

import (
	"errors"
	"runtime"
	"testing"

	"libdist.example/dist"
)

// Values that nobody closes: libdist's memory stays near what is in use, by libdist's own count.
func TestForgottenValuesAreBounded(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 2})
	const size, values, slack = 4 << 20, 200, 64 << 20
	data := make([]float32, size/4)
	before, most := dist.NativeMemory(), int64(0)
	for range values {
		if _, err := dist.NewValue(s, data); err != nil {
			t.Fatal(err)
		}
		most = max(most, dist.NativeMemory()-before)
	}
	// A slack for what was made since the last collection, and as much for cleanups that were still to come.
	if most > 4*slack || most < size {
		t.Errorf("%d MiB of %d MiB were held at the same time", most>>20, values*size>>20)
	}
	// What is still to be let go of is no other test's.
	for dist.NativeMemory()-before >= size {
		runtime.GC()
	}
}

func TestMemoryIsCountedDown(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	defer dist.SetMemorySlack(dist.SetMemorySlack(-1))
	// The count is the process's: what earlier tests have forgotten may go meanwhile, and is far less than half of it.
	const size = 64 << 20
	before := dist.NativeMemory()
	v := must[*dist.Value](t)(dist.NewValue(s, make([]float64, size/8)))
	if held := dist.NativeMemory() - before; held < size/2 {
		t.Errorf("a value of %d bytes has %d", size, held)
	}
	v.Close()
	if left := dist.NativeMemory() - before; left >= size/2 {
		t.Error("a closed value has", left)
	}
	if slack := dist.SetMemorySlack(1 << 20); slack != -1 {
		t.Error(slack)
	}
}

type closing struct {
	name  string
	order *[]string
	err   error
}

func (c closing) Close() error {
	*c.order = append(*c.order, c.name)
	return c.err
}

func TestCloserClosesAll(t *testing.T) {
	s := newStrategy(t, dist.Options{Replicas: 1})
	var all dist.Closer
	v := dist.Keep(&all, must[*dist.Value](t)(dist.NewScalar(s, 1.0)))
	var order []string
	boom := errors.New("boom")
	dist.Keep(&all, closing{"first", &order, nil})
	dist.Keep(&all, closing{"second", &order, boom})
	if err := all.Close(); err != boom || len(order) != 2 || order[0] != "second" || v.Kind() != 0 {
		t.Error(err, order, v)
	}
	if err := all.Close(); err != nil || len(order) != 2 {
		t.Error(err, order)
	}
}
