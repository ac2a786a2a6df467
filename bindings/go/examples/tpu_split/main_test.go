// SPDX-License-Identifier: Apache-2.0

package main

func Example_main() {
	main()
	// Output:
	// logical device 0: rows 0-1, columns 0-1, first pixel 1000
	// logical device 1: rows 0-1, columns 2-3, first pixel 994
	// logical device 2: rows 0-1, columns 4-5, first pixel 988
	// logical device 3: rows 0-1, columns 6-7, first pixel 982
	// logical device 4: rows 2-3, columns 0-1, first pixel 952
	// logical device 5: rows 2-3, columns 2-3, first pixel 946
	// logical device 6: rows 2-3, columns 4-5, first pixel 940
	// logical device 7: rows 2-3, columns 6-7, first pixel 934
	// all 384 pixels: 0 wrong
}
