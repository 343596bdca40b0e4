from forebay._arrow.columns import bytes_column as bytes_column
from forebay._arrow.columns import seek_cell as seek_cell
