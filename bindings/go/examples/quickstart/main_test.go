// SPDX-License-Identifier: Apache-2.0

package main

func Example_main() {
	main()
	// Output:
	// replica 0: 60 64 68
	// replica 1: 60 64 68
	// replica 2: 60 64 68
	// replica 3: 60 64 68
}
