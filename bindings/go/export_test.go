// SPDX-License-Identifier: Apache-2.0

package dist

import "libdist.example/dist/internal/cdist"

// HoldItem keeps the goroutine that takes what has ended at this item, when it comes to it, until release is called.
func HoldItem(i *Item) (release func()) {
	i.mu.Lock()
	return i.mu.Unlock
}

// OwnWords replaces the marked names of C in a text by names of this package.
func OwnWords(marked string) string { return cdist.Own_words(marked) }

// Marked is the message of an error as libdist's core gave it; "" if this package made the error.
func Marked(err *Error) string { return err.told }

// LastToken is the latest of those that stand for the program's functions and objects where libdist may call for them.
func LastToken() int64 { return registry.last.Load() }

// TokensSince is how many later tokens than that stand for something: no other test's.
func TokensSince(last int64) (n int) {
	registry.entries.Range(func(token, _ any) bool {
		if token.(int64) > last {
			n++
		}
		return true
	})
	return n
}
