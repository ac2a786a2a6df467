// SPDX-License-Identifier: Apache-2.0

package dist

// InGo is a message of the core's in this package's words.
func InGo(message string) string { return inGo(message) }
