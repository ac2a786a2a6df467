// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The type of a tensor's elements. */
public enum DType {
    /** IEEE 754 binary16, as its bits in a short. */
    F16(1),
    /** The upper half of a float, as its bits in a short. */
    BF16(2),
    /** {@code float}. */
    F32(3),
    /** {@code double}. */
    F64(4),
    /** {@code byte}. */
    I8(5),
    /** {@code byte}, unsigned. */
    U8(6),
    /** {@code short}. */
    I16(7),
    /** {@code short}, unsigned. */
    U16(8),
    /** {@code int}. */
    I32(9),
    /** {@code int}, unsigned. */
    U32(10),
    /** {@code long}. */
    I64(11),
    /** {@code long}, unsigned. */
    U64(12),
    /** Two F32: real, imaginary. */
    COMPLEX64(13),
    /** One byte: 0 is false, anything else is true; libdist writes 0 or 1. */
    BOOL(14);

    final int code;

    DType(int code) {
        this.code = code;
    }

    static DType of(int code) {
        return switch (code) {
            case 1 -> F16;
            case 2 -> BF16;
            case 3 -> F32;
            case 4 -> F64;
            case 5 -> I8;
            case 6 -> U8;
            case 7 -> I16;
            case 8 -> U16;
            case 9 -> I32;
            case 10 -> U32;
            case 11 -> I64;
            case 12 -> U64;
            case 13 -> COMPLEX64;
            case 14 -> BOOL;
            default -> throw new DistException(Status.INTERNAL, "DType: libdist gave " + code);
        };
    }

    /** How many bytes an element has. */
    public int sizeBytes() {
        return switch (this) {
            case I8, U8, BOOL -> 1;
            case F16, BF16, I16, U16 -> 2;
            case F32, I32, U32 -> 4;
            case F64, I64, U64, COMPLEX64 -> 8;
        };
    }

    /** As libdist writes it, "f32". */
    @Override
    public String toString() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
}
