// SPDX-License-Identifier: Apache-2.0

package dist

// InGo is a message of the core's in this package's words.
func InGo(message string) string { return inGo(message) }

// Tokens are how many of the program's functions and objects libdist may call for.
func Tokens() (n int) {
	registry.entries.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}
