// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"libdist.example/dist/internal/cdist"
)

// nativeMemory bounds how much libdist memory unreachable objects can hold. The garbage collector closes such
// objects, but it runs only when Go's own heap has grown, and a value of many MiB is only a few hundred bytes
// there. Therefore libdist counts its memory, and this package runs the collector when much more is held than
// after the previous collection.
var nativeMemory = memoryBound{held: (*atomic.Int64)(pointer(cdist.Memory_counter()))}

func init() {
	nativeMemory.slack.Store(defaultSlack)
	nativeMemory.next.Store(defaultSlack)
}

const (
	defaultSlack = 64 << 20
	mostSlack    = 1 << 30
	patience     = 20 * time.Millisecond // with the cleanups that a collection has found
)

type memoryBound struct {
	held  *atomic.Int64 // C's counter
	slack atomic.Int64
	next  atomic.Int64 // size at which the collector is called
	mu    sync.Mutex   // held while the collector runs, so that others allocate no more meanwhile
}

// bound is called when an object with libdist memory has been created.
func (m *memoryBound) bound() {
	if m.held.Load() >= m.next.Load() {
		m.collect()
	}
}

func (m *memoryBound) collect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	slack := m.slack.Load()
	if slack < 0 || m.held.Load() < m.next.Load() {
		return
	}
	called := canary()
	runtime.GC() // queues the cleanups; goroutines of the runtime's call them
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-called:
	case <-late.C:
	}
	for before := int64(-1); before != m.held.Load(); time.Sleep(patience / 100) {
		before = m.held.Load()
	}
	held := m.held.Load()
	m.next.Store(held + max(slack, min(held/4, mostSlack)))
}

// canary returns a channel that is closed when the cleanups of a collection run.
func canary() <-chan struct{} {
	called := make(chan struct{})
	runtime.AddCleanup(&struct{ forgotten [4]*int }{}, func(called chan struct{}) { close(called) }, called)
	return called
}

// NativeMemory returns the number of bytes that libdist holds for the strategies of this process, including
// their values, variables and other objects.
func NativeMemory() int64 { return nativeMemory.held.Load() }

// SetMemorySlack sets how many bytes libdist's memory may grow after a collection before this package runs
// the garbage collector, which closes objects that the program no longer refers to. It returns the previous
// setting; the default is 64 MiB. If more than four times the setting is in use, the limit is a quarter of
// the memory in use instead, at most 1 GiB. A negative value disables these collections.
func SetMemorySlack(bytes int64) (before int64) {
	before = nativeMemory.slack.Swap(bytes)
	nativeMemory.next.Store(nativeMemory.held.Load() + max(bytes, 0))
	return before
}

// A Closer closes several objects together. The zero Closer is ready to use. It must not be used by several
// goroutines at the same time.
//
//	var all dist.Closer
//	defer all.Close()
//	loss := dist.Keep(&all, value)
type Closer struct{ list []interface{ Close() error } }

// Keep adds one to the objects that the Closer closes, and returns it.
func Keep[T interface{ Close() error }](c *Closer, one T) T {
	c.list = append(c.list, one)
	return one
}

// Close closes all objects that were added, the last one first, and returns the first error. The Closer can
// be used again.
func (c *Closer) Close() (err error) {
	list := c.list
	c.list = nil
	for i := len(list) - 1; i >= 0; i-- {
		if failed := list[i].Close(); failed != nil && err == nil {
			err = failed
		}
	}
	return err
}
