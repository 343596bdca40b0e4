from forebay._records.rows import RowWindow as RowWindow
