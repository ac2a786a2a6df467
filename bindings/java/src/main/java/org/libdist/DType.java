// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** The type of a tensor's elements. */
public enum DType {
    /** IEEE 754 binary16, as its bits in a short. */
    F16(DistModuleConstants.DIST_F16, 2, "f16"),
    /** The upper half of a float, as its bits in a short. */
    BF16(DistModuleConstants.DIST_BF16, 2, "bf16"),
    /** float. */
    F32(DistModuleConstants.DIST_F32, 4, "f32"),
    /** double. */
    F64(DistModuleConstants.DIST_F64, 8, "f64"),
    /** byte. */
    I8(DistModuleConstants.DIST_I8, 1, "i8"),
    /** byte, unsigned. */
    U8(DistModuleConstants.DIST_U8, 1, "u8"),
    /** short. */
    I16(DistModuleConstants.DIST_I16, 2, "i16"),
    /** short, unsigned. */
    U16(DistModuleConstants.DIST_U16, 2, "u16"),
    /** int. */
    I32(DistModuleConstants.DIST_I32, 4, "i32"),
    /** int, unsigned. */
    U32(DistModuleConstants.DIST_U32, 4, "u32"),
    /** long. */
    I64(DistModuleConstants.DIST_I64, 8, "i64"),
    /** long, unsigned. */
    U64(DistModuleConstants.DIST_U64, 8, "u64"),
    /** Two floats: real, imaginary. */
    COMPLEX64(DistModuleConstants.DIST_COMPLEX64, 8, "complex64"),
    /** One byte: 0 is false, all else true. */
    BOOL(DistModuleConstants.DIST_BOOL, 1, "bool");

    private static final DType[] BY_CODE = values();

    final int code;
    private final int sizeBytes;
    private final String text;

    DType(int code, int sizeBytes, String text) {
        this.code = code;
        this.sizeBytes = sizeBytes;
        this.text = text;
    }

    /** How many bytes an element has. */
    public int sizeBytes() {
        return sizeBytes;
    }

    /** As libdist writes it, "f32". */
    @Override
    public String toString() {
        return text;
    }

    static DType of(int code) {
        if (code < 1 || code > BY_CODE.length) {
            throw new DistException(Status.INTERNAL, "a dtype that this version does not know: " + code);
        }
        return BY_CODE[code - 1];
    }
}
