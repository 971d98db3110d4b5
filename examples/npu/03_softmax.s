# Softmax over the rows of f32[16,100]: four vector programs, no scalar work.
#
# The vector unit runs a micro-program over a loop nest. Its inputs arrive in v0, v1, v2, its result leaves from v3. A stride of 0
# reads the same element again, which is how a row's maximum meets every element of the row. vx.red reduces the nest's levels of a
# mask (bit 0: the outermost); exp is the recipe of HLO's exponential, bit for bit.
.config npu1-edge

.arg x f32[16,100] in
.arg y f32[16,100] out

.desc whole dim(1600) src(1) dst(1) elem 4
.vdesc row     dim(16,100) a.f32(100,1) out.f32(1,0)               # one result a row
.vdesc against dim(16,100) a.f32(100,1) b.f32(1,0) out.f32(100,1)  # elements against their row's number

.vprog same
  mov v3, v0
.end
.vprog shifted_exp
  sub v3, v0, v1
  exp v3, v3
.end
.vprog divide
  div v3, v0, v1
.end

        movi r1, 0                     # x, then e^(x - max), then the result
        movi r2, 0x2000                # a number a row
        dma.ld.0 [r1], $x, whole       sig s0+1
        vx.red [r2], same, row, a=r1, op=max, levels=2       wait s0>=1
        vx.run [r1], shifted_exp, against, a=r1, b=r2        # one queue works in order: no tokens between these
        vx.red [r2], same, row, a=r1, op=sum, levels=2
        vx.run [r1], divide, against, a=r1, b=r2             sig s1+1
        dma.st.0 $y, [r1], whole       wait s1>=1
        fence all
        halt
