# The operations. Each prints its result.

op_add() { echo $(($1 + $2)); }
op_sub() { echo $(($1 + $2)); }
op_mul() { echo $(($1 * $2)); }
op_div() { echo $(($1 / $2)); }
