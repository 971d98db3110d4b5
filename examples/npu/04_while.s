# A while loop whose condition is data: halve x until its largest magnitude is below 1, and count the rounds.
#
# HLO's while stays on the device: the vector unit computes the predicate, the sequencer reads it from the scratchpad with lds and
# branches. lds looks at what another unit wrote, so it has to be ordered behind it: here by a semaphore that the sequencer takes.
.config npu1-edge

.arg x f32[64] inout
.arg rounds s32[1] out

.desc data  dim(64) src(1) dst(1) elem 4
.desc one   dim(1) src(1) dst(1) elem 4
.vdesc halves dim(64) a.f32(1) out.f32(1)
.vdesc any    dim(64) a.f32(1) out.s32(0)

.vprog half
  lit v1, 0.5
  mul v3, v0, v1
.end
.vprog large
  lit v1, 1.0
  abs v2, v0
  cmp.ge v3, v2, v1
.end

        movi r1, 0                     # x
        movi r2, 0x400                 # the predicate
        movi r5, 0                     # rounds
        dma.ld.0 [r1], $x, data        sig s0+1
        vx.red [r2], large, any, a=r1, op=or, levels=1   wait s0>=1 sig s1+1
again:  sem.wait.sq                    wait s1>=1
        lds.s32 r3, [r2]
        beq r3, r0, done
        add r5, r5, 1
        vx.run [r1], half, halves, a=r1
        vx.red [r2], large, any, a=r1, op=or, levels=1   sig s1+1
        jmp again
done:   sts.s32 [r2], r5
        sem.sig.sq                     sig s2+1
        dma.st.0 $rounds, [r2], one    wait s2>=1
        dma.st.0 $x, [r1], data
        fence all
        halt
