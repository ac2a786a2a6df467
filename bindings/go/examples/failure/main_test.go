// SPDX-License-Identifier: Apache-2.0

package main

func Example_main() {
	main()
	// Output:
	// run: row 7 of the data is broken
	// is it the replica's own error? true
	// replica 0: ABORTED, replica 2 failed in "gradient"
	// cancelled: true
}
