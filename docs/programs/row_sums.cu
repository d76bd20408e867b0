// nvcc -ptx -arch=sm_90 -o row_sums.ptx row_sums.cu

struct Matrix {
    const float* data;
    int rows;
    int columns;
};

/// sums[i] is the sum of row i of the matrix: one warp a row, one lane every 32nd column.
extern "C" __global__ void row_sums(Matrix matrix, float* sums) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= matrix.rows) return;
    const int lane = threadIdx.x % 32;
    float sum = 0;
    for (int column = lane; column < matrix.columns; column += 32) {
        sum += matrix.data[static_cast<long long>(row) * matrix.columns + column];
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, distance);
    if (lane == 0) sums[row] = sum;
}
