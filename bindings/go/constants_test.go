// SPDX-License-Identifier: Apache-2.0

package dist

import "testing"

func TestCodesHaveNames(t *testing.T) {
	for code, want := range map[Code]string{ErrInvalidArgument: "INVALID_ARGUMENT", ErrDataLoss: "DATA_LOSS"} {
		if got := code.String(); got != want {
			t.Errorf("code %d is %q, not %q", int(code), got, want)
		}
	}
}
