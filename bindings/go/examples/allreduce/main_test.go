// SPDX-License-Identifier: Apache-2.0

package main

func Example_main() {
	main()
	// Output:
	// replica 0: [4 6 2]
	// replica 1: [4 6 2]
	// replica 2: [4 6 2]
	// replica 3: [4 6 2]
	// run: row 7 of the data is broken
	// replica 0: ABORTED, replica 2 failed
}
