// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/** Which implementation a program asks for; the bits are the same. */
public enum Communication {
    /** libdist's choice. */
    AUTO(DistModuleConstants.DIST_COMMUNICATION_AUTO),
    /** Taken, and of no consequence. */
    RING(DistModuleConstants.DIST_COMMUNICATION_RING),
    /** Taken: the devices are host CPUs. */
    NCCL(DistModuleConstants.DIST_COMMUNICATION_NCCL);

    final int code;

    Communication(int code) {
        this.code = code;
    }

    static Communication of(int code) {
        for (Communication each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "Communication: libdist gave " + code);
    }

    /** TensorFlow's name of it. */
    public String tfName() {
        return Texts.of(DistModule.dist_communication_name(code));
    }

    /**
     * The one of that name, in any case: for settings that are read from a file or a command line.
     *
     * @throws DistException INVALID_ARGUMENT another name; the message says which there are
     */
    public static Communication fromName(String name) {
        int[] out = new int[1];
        DistModule.dist_communication_from_name(Texts.bytes(name, "name"), out);
        return of(out[0]);
    }
}
