// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

import org.libdist.internal.DistModule;

/**
 * The collective implementation that a program asks for (TensorFlow: CommunicationImplementation). It
 * does not change the bits.
 */
public enum Communication {
    /** libdist's choice. */
    AUTO(0xF00),
    /** Accepted, and of no consequence. */
    RING(0xF01),
    /** Accepted, but libdist uses its own implementation: devices are host CPUs. */
    NCCL(0xF02);

    final int code;

    Communication(int code) {
        this.code = code;
    }

    static Communication of(int code) {
        return switch (code) {
            case 0xF00 -> AUTO;
            case 0xF01 -> RING;
            case 0xF02 -> NCCL;
            default -> throw new DistException(Status.INTERNAL, "Communication: libdist gave " + code);
        };
    }

    /** TensorFlow's name of it; null where it has none. */
    public String tfName() {
        return Texts.of(DistModule.dist_enum_name(DistModule.DIST_ENUM_COMMUNICATION, code));
    }

    /**
     * The one of that name, in any case: for settings that are read from a file or a command line.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
     */
    public static Communication fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_enum_from_name(DistModule.DIST_ENUM_COMMUNICATION, Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
